//go:build !linux

package exec

import "syscall"

// groupAttributes creates a process group. Only Linux can kill it when this process dies.
func groupAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true}
}
