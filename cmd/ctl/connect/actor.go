package connect

import (
	"context"
	"os/user"
)

// Actor is who the log names as the author of what a human says: the one that the API server knows, or else the one that
// this machine does.
func Actor(ctx context.Context, cluster *Cluster) string {
	if cluster != nil {
		if name := cluster.User(ctx); name != "" {
			return "user/" + name
		}
	}
	if u, err := user.Current(); err == nil {
		return "user/" + u.Username
	}
	return "user/unknown"
}
