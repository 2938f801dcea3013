// Package retention says what of the log's old epochs is still needed: the commits of what has not ended. It asks the daemon's view, which
// forgets the rest with the end of an epoch, so that there is one judgement of what may be forgotten.
//
// What never may live here: a rule of a domain about when something has ended.
package retention
