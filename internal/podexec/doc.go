// Package podexec answers the exec requests of an API server, over SPDY, for tests: there is no kubelet and no container
// behind it. The command is a function.
//
// It reads no standard input, and knows no terminal. The programs of scute do not import it.
package podexec
