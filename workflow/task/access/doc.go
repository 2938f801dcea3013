// Package access connects tasks to the API servers that they work on. It opens the cluster that the inputs name, with the
// permissions that the run has there, and reads, waits for and writes its objects.
//
// An error of it says whether another attempt can help: what the server will answer the same way again is final.
//
// What never may live here: what one kind of task does.
package access
