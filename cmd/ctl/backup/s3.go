package backup

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"scute.dev/backup/store"
	"scute.dev/cmd/ctl/cli"
	"scute.dev/mover/archive"
	"scute.dev/view"
)

// bucketOptions locate a backup in a bucket. The credentials are in environment variables.
type bucketOptions struct {
	Endpoint, Region, CA string
	Insecure             bool
}

const scheme = "s3://"

func (o *bucketOptions) addFlags(f *pflag.FlagSet) {
	f.StringVar(&o.Endpoint, "store-endpoint", "", "URL of the store of an s3:// backup; the variable AWS_ENDPOINT_URL_S3 or AWS_ENDPOINT_URL if empty")
	f.StringVar(&o.Region, "store-region", "", "Region of the bucket; the variable AWS_REGION if empty")
	f.StringVar(&o.CA, "store-ca-file", "", "File with the certificate authorities of the store; the variable AWS_CA_BUNDLE if empty")
	f.BoolVar(&o.Insecure, "store-insecure", false, "Permit a store without TLS")
}

// fetch copies a backup from a bucket to a local folder, which the caller removes.
func (o *bucketOptions) fetch(ctx context.Context, from string) (dir string, err error) {
	bucket, place, _ := strings.Cut(strings.TrimPrefix(from, scheme), "/")
	place = strings.Trim(place, "/")
	endpoint := cmp.Or(o.Endpoint, os.Getenv("AWS_ENDPOINT_URL_S3"), os.Getenv("AWS_ENDPOINT_URL"))
	access, secret := os.Getenv("AWS_ACCESS_KEY_ID"), os.Getenv("AWS_SECRET_ACCESS_KEY")
	switch {
	case bucket == "" || place == "":
		return "", cli.Usagef("--from is %q: write it as s3://BUCKET/NAME, as in the status of the BackupSchedule", from)
	case endpoint == "":
		return "", cli.Usagef("--store-endpoint is missing: set it to the URL of the store")
	case access == "" || secret == "":
		return "", cli.Usagef("the credentials of the store are missing: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY")
	}
	var ca []byte
	if file := cmp.Or(o.CA, os.Getenv("AWS_CA_BUNDLE")); file != "" {
		if ca, err = os.ReadFile(file); err != nil { //nolint:gosec // the file that the user names
			return "", cli.Usagef("--store-ca-file: %w", err)
		}
	}
	s, err := store.OpenS3(store.S3Options{
		Endpoint: endpoint, Bucket: bucket, Region: cmp.Or(o.Region, os.Getenv("AWS_REGION")), Insecure: o.Insecure, CA: ca,
		AccessKeyID: access, SecretAccessKey: secret, SessionToken: os.Getenv("AWS_SESSION_TOKEN"),
	})
	if err != nil {
		return "", cli.Usagef("%w", explain(err, from))
	}
	defer s.Close()
	if dir, err = os.MkdirTemp("", "scute-backup-"); err != nil {
		return "", err
	}
	if err := store.Download(ctx, s, place, filepath.Join(dir, "backup")); err != nil {
		_ = os.RemoveAll(dir)
		return "", explain(hintBelow(ctx, s, place, scheme+bucket+"/", err), from)
	}
	return dir, nil
}

const maxShown = 5

// hintBelow adds the newest backups below a folder to the error, if the folder itself is not a
// backup. prefix precedes their paths in --from.
func hintBelow(ctx context.Context, in store.Store, place, prefix string, err error) error {
	if !errors.Is(err, archive.ErrIncomplete) {
		return err
	}
	below, all, listing := store.ListBackups(ctx, in, place, maxShown)
	if listing != nil || all == 0 {
		return err
	}
	var names strings.Builder
	for _, b := range slices.Backward(below) {
		names.WriteString("\n  --from " + prefix + b)
	}
	return fmt.Errorf("%w; below it there are %s, the newest first:%s", archive.ErrIncomplete, view.Count(all, "complete backup"), names.String())
}

// hintInFolder works like hintBelow, for a folder on this machine.
func hintInFolder(ctx context.Context, dir string, err error) error {
	folder, opening := store.OpenFolder(dir)
	if opening != nil {
		return err
	}
	defer folder.Close()
	return hintBelow(ctx, folder, ".", strings.TrimSuffix(dir, "/")+"/", err)
}

// explain adds to an error of a store the remedy, and the flag or variable that causes the error.
func explain(err error, from string) error {
	stored, ok := errors.AsType[*store.Error](err)
	if !ok {
		return fmt.Errorf("--from %s: %w", from, err)
	}
	switch stored.Field {
	case store.FieldEndpoint:
		next := stored.Next
		switch stored.Reason {
		case store.ReasonPlainText:
			next = "write https://, or permit it with --store-insecure"
		case store.ReasonNotTrusted:
			next = "name its certificate authority with --store-ca-file"
		}
		return fmt.Errorf("--store-endpoint: %s: %s", stored.Message, next)
	case store.FieldCredentials:
		return fmt.Errorf("AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY: %s: correct them, and permit them to get and list objects", stored.Message)
	case store.FieldBucket:
		return fmt.Errorf("--from %s: the bucket: %s: correct its name, or --store-region", from, stored.Message)
	}
	return fmt.Errorf("--from %s: %w: %s", from, err, stored.Next)
}
