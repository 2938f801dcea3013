package lifecycle

import (
	"bytes"
	"fmt"
	"os"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"scute.dev/internal/atomicfile"
	"scute.dev/workflow/lifecycle/hook"
	"scute.dev/workflow/lifecycle/management"
	"scute.dev/workflow/lifecycle/provider"
	"scute.dev/workflow/lifecycle/workload"
	"scute.dev/workflow/task/access"
)

// configWriter writes a cluster's applied configuration, as a hook after a creation and as a task
// after an upgrade.
type configWriter struct {
	noManagement
	noWorkload
	sink     ConfigSink
	provider any
}

// Aliases, because both types have the same name and could not be embedded together.
type (
	noManagement = management.NoopHookRegistrar
	noWorkload   = workload.NoopHookRegistrar
)

// Name returns the prefix of the names of its hooks.
func (*configWriter) Name() string { return "write-config" }

// BindManagementCreate binds the hook after the last task.
func (w *configWriter) BindManagementCreate(b *hook.Binder) error {
	return hook.After(b, management.PostCreate,
		func(c *management.Managed) error { return w.writeCreated(&c.Context, c.Cluster) },
		func(c *management.Managed) error { return w.restore(&c.Context) })
}

// BindWorkloadCreate binds the hook after the last task.
func (w *configWriter) BindWorkloadCreate(b *hook.Binder) error {
	return hook.After(b, workload.PostCreate,
		func(c *workload.Connected) error { return w.writeCreated(&c.Context, c.Cluster) },
		func(c *workload.Connected) error { return w.restore(&c.Context) })
}

func (w *configWriter) writeCreated(c *provider.Context, spec provider.Cluster) error {
	p, ok := w.provider.(provider.Converter)
	if !ok {
		return nil
	}
	objects, err := p.ClusterObjects(c, spec)
	if err != nil {
		return err
	}
	return w.write(c, objects)
}

func (w *configWriter) writeUpgraded(t provider.Target) error {
	p, ok := w.provider.(provider.Upgrader)
	if !ok || w.sink == (ConfigSink{}) {
		return provider.SkipError("params.writeConfig is not set")
	}
	objects, err := t.AppliedObjects(p)
	if err != nil {
		return err
	}
	return w.write(t.Context, objects)
}

type writeRecord struct {
	BackupPath string `json:"backupPath,omitempty"`
}

const configPart = "config"

func (w *configWriter) write(c *provider.Context, objects []*unstructured.Unstructured) error {
	text, err := encode(objects)
	if err != nil {
		return err
	}
	if w.sink.File != "" {
		return w.writeFile(c, text)
	}
	m := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: w.sink.ConfigMap}}
	return provider.WriteOwn(c, "ConfigMap", m, func() error {
		m.Data = map[string]string{"cluster.yaml": string(text)}
		return nil
	})
}

// encode returns the objects as YAML, without Secrets.
func encode(objects []*unstructured.Unstructured) ([]byte, error) {
	var all bytes.Buffer
	for _, o := range objects {
		if o.GetKind() == "Secret" {
			continue
		}
		data, err := yaml.Marshal(o.Object)
		if err != nil {
			return nil, fmt.Errorf("writing %s %s: %w", o.GetKind(), o.GetName(), err)
		}
		all.WriteString("---\n")
		all.Write(data)
	}
	return all.Bytes(), nil
}

// writeFile replaces the file and keeps a copy of the previous one next to it.
func (w *configWriter) writeFile(c *provider.Context, text []byte) error {
	var before writeRecord
	noted, err := c.Recorded(configPart, &before)
	if err != nil {
		return err
	}
	if !noted { // copy before recording: once the record exists, the file may already have the new content
		switch old, err := os.ReadFile(w.sink.File); {
		case err == nil:
			before.BackupPath = w.sink.File + ".before"
			if err := atomicfile.WriteBytes(before.BackupPath, old); err != nil {
				return fmt.Errorf("saving the earlier configuration: %w", err)
			}
		case !os.IsNotExist(err):
			return fmt.Errorf("reading the earlier configuration: %w", err)
		}
		if err := c.Record(configPart, before, false); err != nil {
			return err
		}
	}
	if err := atomicfile.WriteBytes(w.sink.File, text); err != nil {
		return fmt.Errorf("writing the configuration: %w", err)
	}
	return nil
}

// restore restores the previous file. A ConfigMap is deleted, but only if this run was the last to
// write it.
func (w *configWriter) restore(c *provider.Context) error {
	if w.sink.ConfigMap != "" {
		return provider.RemoveOwn(c, "ConfigMap", w.sink.ConfigMap, func(annotations map[string]string) bool {
			return annotations[access.StepKeyAnnotation] == c.Call().RunKey()
		})
	}
	var before writeRecord
	noted, err := c.Recorded(configPart, &before)
	switch {
	case err != nil || !noted:
		return err
	case before.BackupPath != "":
		err = os.Rename(before.BackupPath, w.sink.File)
	default:
		err = os.Remove(w.sink.File)
	}
	if err != nil && !os.IsNotExist(err) {
		return fmt.Errorf("restoring the configuration: %w", err)
	}
	return nil
}
