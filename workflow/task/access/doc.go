// Package access connects tasks to API servers. It opens the cluster that the inputs specify with
// the permissions of the run, and reads, writes and waits for its objects. It also sends the tasks'
// HTTP requests to other servers. Its errors are final if another attempt would get the same
// response.
//
// This package never contains code of one kind of task.
package access
