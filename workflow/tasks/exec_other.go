//go:build !linux

package tasks

import "syscall"

// groupAttributes gives a command a process group. Only Linux can kill it when this process dies.
func groupAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true}
}
