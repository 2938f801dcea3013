// Package leak searches event logs and log lines for the content of Secrets.
//
// It must not contain what scute does to keep Secrets out of them.
package leak
