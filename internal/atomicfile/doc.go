// Package atomicfile replaces files atomically. A crash leaves the old file or the new one.
//
// This package never decides what is written.
package atomicfile
