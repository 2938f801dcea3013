//go:build unix && !linux

package process

import "syscall"

// attributes without Linux's parent-death signal: there a parent killed with SIGKILL leaves its children running.
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true}
}
