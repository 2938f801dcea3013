// Package etcd tests what scute does to a real etcd with three members. They have TLS and separate
// addresses, as on the machines of a control plane. The in-memory clusters of the other suites have
// no etcd with a database.
package etcd
