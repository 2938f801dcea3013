// Package leak finds material of Secrets in what scute wrote: in the events of its logs, in what is kept beside them, and in the log lines of
// its daemons.
//
// What never may live here: what scute does to keep Secrets out of them.
package leak
