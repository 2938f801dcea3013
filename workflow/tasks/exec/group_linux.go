package exec

import "syscall"

// groupAttributes returns attributes with which a command gets a process group, and is killed when this process dies.
func groupAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
