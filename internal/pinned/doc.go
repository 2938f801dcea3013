// Package pinned protects the stored format against changes, in tests.
//
// Each type of event has a file in testdata/stored of its package, made once of a value that has every field set. The files
// are read again by every later program: a field that was renamed, a type that is gone, a new field that older events
// cannot be written back without, fails the test. A file is never changed. A field that is added gets a file beside it:
//
//	go test ./mover -run TestStored -pinned.add
//
// It is imported by tests and benchmarks only.
package pinned
