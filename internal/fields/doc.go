// Package fields writes a value field by field, those that are not exported included, and reads it back.
//
// The form has no names: it is read by the program that wrote it, and by no other one. Equal values have equal bytes, nil and
// empty are told apart, and times keep their nanoseconds, which the JSON of Kubernetes types drops. So the state of a domain can
// be saved without exporting it, and a field that is added is saved without being listed again.
//
// What never may live here: what is saved, and where. Nothing that must outlast a version of the program is written in this form.
package fields
