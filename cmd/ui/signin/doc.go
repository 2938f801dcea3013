// Package signin keeps who has signed in to the pages of the daemon, in bounded memory, and who fails at it too often.
//
// What never may live here: HTTP, and who a token belongs to.
package signin
