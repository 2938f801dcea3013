// Package rotation selects the share of the long test matrices that runs today. If a whole matrix is too long for CI,
// each run tests a share of it, a different one every day. Over a cycle every case runs.
//
// An environment variable selects the share: ROTATION=3 selects the third, in every matrix modulo its number of shares.
// Without it, or with ROTATION=all, all cases run, so a manual run of a test is complete. `make test-all` sets it to
// the number of the day, `make test-full` to all.
package rotation
