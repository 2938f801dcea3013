// Package rotation samples the long matrices of the suites: where a whole one is too long for CI, each run takes a share of it,
// another one every day, and says which. Over a cycle every case is taken.
//
// The environment says which share: ROTATION=3 takes the third, in every matrix the same number modulo its shares. Without it,
// or with ROTATION=all, everything is taken: a test that somebody runs by hand is whole. `make test-all` sets it to the number of
// the day, `make test-full` to all.
package rotation
