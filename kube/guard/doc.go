// Package guard restricts the addresses to which the daemon connects on behalf of a user.
//
// The author of a WorkflowRun or of a Secret names a URL or an API server. The daemon dials it from
// its own network, which also contains its log, the cloud's metadata service and the Services of
// other tenants. Therefore the daemon reaches only public addresses, and addresses that its
// operator has listed. It checks every address when it dials, after the name was resolved, so that
// a second lookup cannot return another address. The guard also bounds the responses of users' API
// servers, so that they cannot exhaust the daemon's memory, and does not follow their redirects.
//
//	g, err := guard.New([]string{"10.0.0.0/8"}) // allowed by the operator
//	client.Transport = &http.Transport{DialContext: g.Dialer(30 * time.Second).DialContext}
//	g.Protect(config, namespace)                // an API server of a user's kubeconfig
//
// This package never decides which callers are restricted. The caller does: for example, scutectl
// on a user's own machine is not restricted.
package guard
