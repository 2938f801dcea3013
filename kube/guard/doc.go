// Package guard restricts the addresses to which the daemon connects on behalf of a user.
//
// The author of a WorkflowRun or of a Secret names a URL or an API server; the daemon dials it from its own place in the
// network, beside its log, the cloud's metadata service and the Services of other tenants. So the daemon reaches public
// addresses, and beyond them only what its operator has listed. Every address is checked when it is dialled, after the
// name was resolved, so that a name cannot lead elsewhere at the second look. Nor does an API server of somebody's fill the
// daemon's memory: its answers are bounded, and its redirects are not followed.
//
//	g, err := guard.New([]string{"10.0.0.0/8"}) // what the operator permits
//	client.Transport = &http.Transport{DialContext: g.Dialer(30 * time.Second).DialContext}
//	g.Protect(config, namespace)                // an API server of somebody's kubeconfig
//
// What never may live here: who is restricted. The caller decides that: a user of scutectl on their own machine is not
// restricted.
package guard
