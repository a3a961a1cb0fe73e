"""How the code of a function is optimised, and which functions have machine code.

Three steps of numba are left out, because another step does the same later: decisions 0054 and 0105 have what
each of them took.
"""

from typing import Any

from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Compiler


class _Library(JITCodeLibrary):
    """The code of one function and of all that LLVM copies into it."""

    def _optimize_functions(self, ll_module: Any) -> None:
        """Leave out the optimisation of the single function: the whole module is optimised again."""
        ll_module.data_layout = self._codegen._data_layout


class _NoEnvironment:
    """Takes the place of what gives a function the objects of Python that its machine code reads."""

    def set_env(self, *_: object) -> None:
        """Do nothing."""


class _LinkedLibrary(_Library):
    """The code of a function that only kernels call: LLVM copies it into them.

    numba makes machine code of it, too, and writes it to the disk. Nothing would read either. An exception in
    such a function has a fixed text: the process that compiles has not the objects of Python that a text of
    values takes.
    """

    @property
    def codegen(self) -> Any:
        """What numba gives the objects of Python to."""
        return _NoEnvironment()

    def _optimize_final_module(self) -> None:
        """Optimise once; numba would first inline with a second list of passes.

        Without any of this, kernels that contain the function are slower by up to a third.
        """
        passes, builder = self._codegen._module_pass_manager()
        passes.run(self._final_module, builder)

    def _finalize_final_module(self) -> None:
        """Leave out the machine code."""
        self._finalize_dynamic_globals()
        self._verify_declare_only_symbols()
        self._finalized = True

    def get_pointer_to_function(self, _: str) -> int:
        """Return 0, which is no address: there is nothing to call."""
        return 0


class KernelCompiler(Compiler):
    """numba's compiler, which does not optimise a function before it is linked with those that it calls."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.state.library = _Library(self.state.targetctx.codegen(), "kernel")
        self.state.library.enable_object_caching()  # else its machine code cannot be written to the disk


class LinkedCompiler(Compiler):
    """numba's compiler, with a library that makes no machine code."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.state.library = _LinkedLibrary(self.state.targetctx.codegen(), "linked")
