// Package atomicfile replaces whole files: after a crash the old file or the new file exists, and never a part of one.
//
// This package never decides what is written.
package atomicfile
