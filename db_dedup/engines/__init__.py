"""What runs the flow: `embedded`, in this process; `spark`, on a cluster. `base` is the interface of both."""
