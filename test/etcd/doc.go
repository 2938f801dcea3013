// Package etcd has tests of what scute does to etcd itself, on a real one: three members with TLS, each on another address, as on the
// machines of a control plane. The in-memory clusters of the other suites have no etcd with a database.
package etcd
