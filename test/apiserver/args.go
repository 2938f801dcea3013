package apiserver

import (
	"fmt"
	"strings"
)

const (
	issuer      = "https://kubernetes.default.svc"
	auditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules: [{level: Metadata}]
`
)

func (s *Server) etcdArgs() []string {
	client, peer := fmt.Sprintf("http://127.0.0.1:%d", s.ports.client), fmt.Sprintf("http://127.0.0.1:%d", s.ports.peer)
	return []string{
		"--name=testbed",
		"--data-dir=" + s.path("etcd"),
		"--listen-client-urls=" + client, "--advertise-client-urls=" + client,
		"--listen-peer-urls=" + peer, "--initial-advertise-peer-urls=" + peer,
		"--initial-cluster=testbed=" + peer,
		"--unsafe-no-fsync", // the data need not survive a crash
		"--log-level=warn",
	}
}

func (s *Server) apiArgs() []string {
	args := []string{
		fmt.Sprintf("--etcd-servers=http://127.0.0.1:%d", s.ports.client),
		"--bind-address=127.0.0.1", "--advertise-address=127.0.0.1", fmt.Sprintf("--secure-port=%d", s.ports.api),
		"--tls-cert-file=" + s.path("apiserver.crt"), "--tls-private-key-file=" + s.path("apiserver.key"),
		"--client-ca-file=" + s.path("ca.crt"),
		"--cert-dir=" + s.path("apiserver"),
		"--authorization-mode=RBAC",
		"--allow-privileged=true",
		"--service-cluster-ip-range=10.0.0.0/24",
		"--service-account-issuer=" + issuer, "--api-audiences=" + issuer,
		"--service-account-key-file=" + s.path("service-account.crt"),
		"--service-account-signing-key-file=" + s.path("service-account.key"),
		"--disable-admission-plugins=ServiceAccount", // it waits for ServiceAccounts that no controller here creates
	}
	if len(s.opts.Admission) > 0 {
		args = append(args, "--enable-admission-plugins="+strings.Join(s.opts.Admission, ","))
	}
	if s.opts.Audit {
		args = append(args, "--audit-policy-file="+s.path("audit-policy.yaml"), "--audit-log-path="+s.AuditLog(), "--audit-log-maxsize=16384") // MiB: the benchmarks read the whole log
	}
	return args
}

func (s *Server) managerArgs() []string {
	return []string{
		"--kubeconfig=" + s.KubeconfigPath(),
		"--controllers=garbage-collector-controller,namespace-controller",
		"--leader-elect=false",
		"--bind-address=127.0.0.1", fmt.Sprintf("--secure-port=%d", s.ports.manager),
		"--cert-dir=" + s.path("kube-controller-manager"),
		"--kube-api-qps=200", "--kube-api-burst=400",
	}
}
