// Command controlplane runs as etcd, kube-apiserver or kube-controller-manager, selected by its
// name. The three share most of their packages, and in one program these are compiled and linked
// once.
//
// etcd and kube-apiserver are complete, with their flags. kube-controller-manager has only the
// controllers that the test bed needs: see manager.go.
package main

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"
	"go.etcd.io/etcd/server/v3/etcdmain"
	"k8s.io/component-base/cli"
	_ "k8s.io/component-base/metrics/prometheus/clientgo" // the metrics of the API server's own clients
	_ "k8s.io/component-base/metrics/prometheus/version"  // the metric kubernetes_build_info
	"k8s.io/kubernetes/cmd/kube-apiserver/app"
)

func main() {
	name := filepath.Base(os.Args[0])
	commands := map[string]func() *cobra.Command{
		"kube-apiserver":          app.NewAPIServerCommand,
		"kube-controller-manager": newManagerCommand,
	}
	switch command, known := commands[name]; {
	case name == "etcd":
		etcdmain.Main(os.Args)
	case known:
		os.Exit(cli.Run(command()))
	default:
		fmt.Fprintf(os.Stderr, "%s: run it as a link named etcd, kube-apiserver or kube-controller-manager\n", name)
		os.Exit(2)
	}
}
