package scuted

import (
	"fmt"
	"maps"
	"path"

	"helm.sh/helm/v4/pkg/chart/common"
	"helm.sh/helm/v4/pkg/chart/common/util"
	"helm.sh/helm/v4/pkg/chart/loader"
	"helm.sh/helm/v4/pkg/engine"
	"helm.sh/helm/v4/pkg/strvals"
)

// Render returns the manifests of a chart by file, as `helm template scute CHART --namespace scute-system --set VALUE
// ...` prints them. It returns an error for values that the chart's schema refuses.
func Render(chart string, values ...string) (map[string]string, error) {
	loaded, err := loader.Load(chart)
	if err != nil {
		return nil, fmt.Errorf("reading the chart: %w", err)
	}
	set := map[string]any{}
	for _, value := range values {
		if err := strvals.ParseInto(value, set); err != nil {
			return nil, fmt.Errorf("--set %s: %w", value, err)
		}
	}
	release := common.ReleaseOptions{Name: "scute", Namespace: Namespace, Revision: 1, IsInstall: true}
	all, err := util.ToRenderValues(loaded, set, release, nil)
	if err != nil {
		return nil, fmt.Errorf("checking the values of the chart: %w", err)
	}
	files, err := engine.Render(loaded, all)
	if err != nil {
		return nil, fmt.Errorf("rendering the chart: %w", err)
	}
	maps.DeleteFunc(files, func(name, _ string) bool { return path.Ext(name) != ".yaml" })
	return files, nil
}
