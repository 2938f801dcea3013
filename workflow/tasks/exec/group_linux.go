package exec

import "syscall"

// groupAttributes creates a process group that is killed when this process dies.
func groupAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
