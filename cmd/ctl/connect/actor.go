package connect

import (
	"context"
	"os/user"
)

// Actor returns the author of an operator's request for the log: the user that the API server reports, otherwise the local user.
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
