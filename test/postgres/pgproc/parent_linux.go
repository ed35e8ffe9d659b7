package pgproc

import "syscall"

// endWithParent makes the process end when its parent does, as end ends it.
func endWithParent(a *syscall.SysProcAttr) { a.Pdeathsig = syscall.SIGQUIT }
