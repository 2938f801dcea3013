// Package podexec serves the exec requests of an API server, over SPDY, for tests. A function replaces the kubelet and the container.
//
// It supports neither standard input nor a terminal. The programs of scute do not import it.
package podexec
