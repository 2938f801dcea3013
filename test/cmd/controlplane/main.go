// Command controlplane is etcd, kube-apiserver and kube-controller-manager in one program, as a link of that name: they
// share most of their packages, which are compiled and linked once.
//
// etcd and kube-apiserver are the whole of them, with their own flags. Of kube-controller-manager it has the
// controllers that the test bed runs: see manager.go.
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
