package backup

import (
	"errors"
	"net"
	"strings"
	"syscall"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"scute.dev/backup/store"
	"scute.dev/cmd/ctl/cli"
	"scute.dev/cmd/ctl/connect"
	"scute.dev/cmd/ctl/kit"
)

// TestABackupGoesToAFolder checks that a URL of a bucket is rejected, instead of writing the backup to a folder of that
// name.
func TestABackupGoesToAFolder(t *testing.T) {
	o := backupOptions{options: options{Kit: &kit.Kit{Env: &cli.Env{}, Flags: connect.New()}}, Clusters: []string{"prod"}, To: "s3://backups/prod", keys: publicKeys{Plaintext: true}}
	if err := o.validate(); err == nil || !strings.Contains(err.Error(), "BackupSchedule") {
		t.Errorf("validate = %v", err)
	}
	o.To = "prod"
	if err := o.validate(); err != nil {
		t.Error(err)
	}
}

// TestWhatAStoreRefuses checks that errors of a store name the flags and variables of this command and what to do.
func TestWhatAStoreRefuses(t *testing.T) {
	_, plain := store.OpenS3(store.S3Options{Endpoint: "http://127.0.0.1:1", Bucket: "backups", AccessKeyID: "a", SecretAccessKey: "s"})
	for says, err := range map[string]error{
		"--store-endpoint: it does not use TLS: the credentials would be sent in plain text: write https://, or permit it with --store-insecure": plain,
		"AWS_SECRET_ACCESS_KEY: the store rejects them (X): correct them":                                                                        &store.Error{Field: store.FieldCredentials, Message: "the store rejects them (X)"},
		"the bucket: the store rejects it (X): correct its name, or --store-region":                                                              &store.Error{Field: store.FieldBucket, Message: "the store rejects it (X)"},
		"--from s3://backups/prod: incomplete":                                                                                                   errors.New("incomplete"),
	} {
		if got := explain(err, "s3://backups/prod"); !strings.Contains(got.Error(), says) {
			t.Errorf("explained = %v, want %s", got, says)
		}
	}
}

// TestWhatTheAPIServerRefuses checks that errors of an API server name the server of the cluster that was asked, and
// what to do.
func TestWhatTheAPIServerRefuses(t *testing.T) {
	o := options{Kit: &kit.Kit{Env: &cli.Env{}, Flags: connect.New()}, cluster: &connect.Cluster{Config: &rest.Config{Host: "https://green:6443"}}, clusterName: "target"}
	for says, err := range map[string]error{
		"https://green:6443 does not accept your credentials: log in again": apierrors.NewUnauthorized("no"),
		"ask for that permission":              apierrors.NewForbidden(schema.GroupResource{Resource: "secrets"}, "", nil),
		"https://green:6443 cannot be reached": &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED},
	} {
		if got := o.explain(t.Context(), clusterError{"target", err}, "", ""); !strings.Contains(got.Error(), says) {
			t.Errorf("refused = %v, want %s", got, says)
		}
		if got := o.explain(t.Context(), clusterError{"source", err}, "", ""); strings.Contains(got.Error(), "green") {
			t.Errorf("refused for the source = %v", got)
		}
	}
}

// clusterError is an error of one of the two clusters.
type clusterError struct {
	cluster string
	err     error
}

func (n clusterError) Error() string { return n.cluster + ": " + n.err.Error() }
func (n clusterError) Unwrap() error { return n.err }
