// Package fact describes an event of the log in words. It is pure.
//
// This package never prints the encoded data of an event. Its texts consist of known fields.
package fact
