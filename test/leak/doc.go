// Package leak searches event logs and log lines for the content of Secrets.
//
// What never may live here: what scute does to keep Secrets out of them.
package leak
