package exec

import "syscall"

// groupAttributes gives a command a process group, and has it killed when this process dies.
func groupAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
