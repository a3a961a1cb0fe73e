"""Functions that only kernels call: LLVM copies them into the kernels, without machine code of their own.

numba makes machine code of each function, also of one that it copies into every kernel which calls it, and
writes it to the disk. Nothing would read either: without both, compiling takes an eighth less (decision
0054). An exception in such a function has a fixed text: the process that compiles has not the objects of
Python that a text of values takes.
"""

from typing import Any

from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Compiler


class _NoEnvironment:
    """Takes the place of what gives a function the objects of Python that its machine code reads."""

    def set_env(self, *_: object) -> None:
        """Do nothing."""


class _LinkedLibrary(JITCodeLibrary):
    """The code of one function, for linking alone."""

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


class LinkedCompiler(Compiler):
    """numba's compiler, with a library that makes no machine code."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.state.library = _LinkedLibrary(self.state.targetctx.codegen(), "linked")
