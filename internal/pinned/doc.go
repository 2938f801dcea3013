// Package pinned protects the stored format of events against changes, in tests.
//
// Each type of event has a file in testdata/stored of its package, which was created once from a
// value with every field set. Every later version must read the files: the test fails if a field is
// renamed, if a type is removed, or if events without a new field are not encoded as they were. A
// file is never changed. A new field gets an additional file:
//
//	go test ./mover -run TestStored -pinned.add
//
// Lines compares the text of a view with a file, which changes with the view.
//
// Only tests and benchmarks import this package.
package pinned
