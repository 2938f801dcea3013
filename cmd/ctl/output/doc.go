// Package output prints resources in kubectl's formats: json, yaml and jsonpath. Each command renders its own text and names.
//
// This package never decides what is printed.
package output
