// Package rotation selects the share of the long test matrices that runs today. Where a whole
// matrix is too long for CI, each run tests a share of it, a different one every day. Over a cycle
// every case runs.
//
// The environment says which share: ROTATION=3 takes the third, in every matrix the same number modulo its shares. Without it,
// or with ROTATION=all, everything is taken: a test that somebody runs by hand is whole. `make test-all` sets it to the number of
// the day, `make test-full` to all.
package rotation
