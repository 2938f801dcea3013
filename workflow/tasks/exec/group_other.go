//go:build !linux

package exec

import "syscall"

// groupAttributes makes a command run in its own process group. Only Linux can kill the group when
// this process dies.
func groupAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true}
}
