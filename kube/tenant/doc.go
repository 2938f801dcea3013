// Package tenant connects to clusters of tenants, with limits against hostile answers. The owner of
// a cluster decides what its API server, kubelets and etcd answer, and may want to harm the daemon:
// to fill its memory, to delay it, or to have it send requests to addresses that only the daemon
// can reach. All connections of the remediator to workload clusters are made here, and each has the
// same bounds:
//
//   - bytes: what one connection brings in, one HTTP header, one frame and one output
//   - time: a connection ends with the context that it was made for
//   - number: so many connections at once to one cluster, and to all of them
//   - addresses: those of the guard, checked when they are dialled, and a few for one name
//   - redirects: none is followed, and no proxy is used
//
// A cluster is asked in these ways:
//
//	d := tenant.New(g)                                // shared by all who ask
//	c, err := d.Cluster("fleet/prod", config)         // config from kube.ParseKubeconfig
//	c.Answers(ctx)                                    // its API server
//	c.Reader(ctx)                                     // objects of it, over connections that are kept for a while
//	c.Forward(ctx, "kube-system", "etcd-n1", 2379)    // a port of a pod, through its kubelet
//	c.Exec(ctx, "kube-system", "etcd-n1", "etcd", "etcdctl", "version")
//	c.Dial(ctx, "10.0.0.7:2379")                      // an address of a machine
//
// client-go's own dialers are not used for port-forwards and commands: they follow redirects, read the body of a
// refusal and the error stream of a command to the end, wait without a context, and their SPDY library believes the
// lengths that the other side states. Both protocols of API servers are supported: WebSocket first, then SPDY.
//
// What never may live here: what is asked and what an answer means (package remediator/observe).
package tenant
