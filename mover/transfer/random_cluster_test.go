package transfer

import (
	"fmt"

	"pgregory.net/rapid"

	"scute.dev/kube/object"
)

// cluster adds a Cluster as its controllers create it: control plane, workers, infrastructure, bootstrap data,
// certificates, and the credentials of its provider.
func (w *randomCluster) cluster(namespace, name string, p realProvider) {
	c := w.add("Cluster", namespace, name, nil)
	c.users[namespace+"/"+name] = true
	w.clusters = append(w.clusters, c)
	c.set(obj{"infrastructureProvisioned": true, "controlPlaneInitialized": true}, "status", "initialization")
	c.set([]any{obj{"type": "ControlPlaneInitialized", "status": "True"}}, "status", "conditions")

	infra := w.part(p.prefix+"Cluster", name, c, c)
	c.set(infra.reference(), "spec", "infrastructureRef")
	plane := "KubeadmControlPlane"
	if w.chance("k0s", 4) {
		plane = "K0sControlPlane"
	}
	cp := w.part(plane, name+"-cp", c, c)
	c.set(cp.reference(), "spec", "controlPlaneRef")
	cp.set(obj{"replicas": int64(1)}, "status")
	template := w.part(p.prefix+"MachineTemplate", name+"-cp", c, c)
	cp.set(template.reference(), "spec", "machineTemplate", "spec", "infrastructureRef")
	w.machine(p, name+"-cp-0", c, cp)

	if w.chance("workers", 2) {
		md := w.part("MachineDeployment", name+"-md", c, c)
		ms := w.part("MachineSet", name+"-md-x", c, md)
		of := w.part(p.prefix+"MachineTemplate", name+"-md", c, c)
		config := w.part("KubeadmConfigTemplate", name+"-md", c, c)
		for _, o := range []*randomObject{md, ms} {
			o.set(of.reference(), "spec", "template", "spec", "infrastructureRef")
			o.set(config.reference(), "spec", "template", "spec", "bootstrap", "configRef")
		}
		for i := range rapid.IntRange(0, 2).Draw(w.t, "machines") {
			w.machine(p, fmt.Sprintf("%s-md-%d", name, i), c, ms)
		}
	}
	if w.chance("health check", 4) {
		w.part("MachineHealthCheck", name, c, c)
	}
	for _, suffix := range []string{"kubeconfig", "ca", "etcd", "sa", "apiserver-etcd-client"} {
		switch rapid.IntRange(0, 3).Draw(w.t, suffix) {
		case 0: // provided by the user
			w.add("Secret", namespace, name+"-"+suffix, c)
		default:
			w.part("Secret", name+"-"+suffix, c, cp)
		}
	}
	if w.chance("files", 4) {
		shared := w.add("Secret", namespace, "files", c)
		cp.set([]any{obj{"path": "/a", "contentFrom": obj{"secret": obj{"name": shared.ref.Name, "key": "a"}}}}, "spec", "kubeadmConfigSpec", "files")
	}
	if w.chance("class", 3) {
		w.class(c, p)
	}
	w.credentials(p, c, infra)
}

// machine adds a Machine and the objects below it.
func (w *randomCluster) machine(p realProvider, name string, c, owner *randomObject) {
	m := w.part("Machine", name, c, owner)
	m.set(obj{"nodeRef": obj{"name": name}}, "status")
	infra := w.part(p.prefix+"Machine", name, c, m)
	config := w.part("KubeadmConfig", name, c, m)
	data := w.part("Secret", name, c, config)
	m.set(infra.reference(), "spec", "infrastructureRef")
	m.set(obj{"configRef": config.reference(), "dataSecretName": data.ref.Name}, "spec", "bootstrap")
	switch p.prefix {
	case "VSphere":
		vm := w.part("VSphereVM", name, c, infra)
		if w.chance("address", 2) {
			w.address(name, c, vm)
		}
	case "Metal3":
		w.host(name, c, infra)
	}
}

// address adds an address that a machine has from a pool.
func (w *randomCluster) address(name string, c, owner *randomObject) {
	kind := rapid.SampledFrom([]string{"InClusterIPPool", "GlobalInClusterIPPool"}).Draw(w.t, "pool")
	pool := w.add(kind, c.ref.Namespace, rapid.SampledFrom([]string{"pool", "pool-" + c.ref.Name}).Draw(w.t, "pool's name"), c)
	claim := w.part("IPAddressClaim", name, c, owner)
	claim.set(pool.reference(), "spec", "poolRef")
	address := w.part("IPAddress", name, c, claim)
	address.set(pool.reference(), "spec", "poolRef")
	address.set(obj{"name": name}, "spec", "claimRef")
	if w.chance("address's second owner", 2) {
		address.owners = append(address.owners, pool)
	}
	if w.chance("reserved", 3) {
		pool.meta()["annotations"] = obj{object.AddressesReservedAnnotation: ""}
	}
}

// host adds the bare metal host of a machine. Newer versions of its provider set no owner, but only the consumer.
func (w *randomCluster) host(name string, c, machine *randomObject) {
	host := w.add("BareMetalHost", c.ref.Namespace, "host-"+name, c)
	if w.chance("older provider", 3) {
		host.owners = append(host.owners, machine)
	}
	bmc := w.add("Secret", c.ref.Namespace, "host-"+name+"-bmc", c)
	if !w.chance("bmc without an owner", 3) {
		bmc.owners = append(bmc.owners, host)
	}
	for _, o := range []*randomObject{host, bmc} {
		o.label("cluster.x-k8s.io/cluster-name", c.ref.Name)
	}
	host.set(obj{"credentialsName": bmc.ref.Name}, "spec", "bmc")
	host.set(obj{"apiVersion": infraGroup + "/v1beta2", "kind": machine.ref.Kind, "name": machine.ref.Name, "namespace": c.ref.Namespace}, "spec", "consumerRef")
	template := w.byRef[object.Ref{Group: infraGroup, Kind: "Metal3MachineTemplate", Namespace: c.ref.Namespace, Name: c.ref.Name + "-cp"}]
	if template.content["spec"] == nil && w.chance("data template", 3) {
		data := w.add("Metal3DataTemplate", c.ref.Namespace, rapid.SampledFrom([]string{"data", "data-" + c.ref.Name}).Draw(w.t, "data template's name"), c)
		template.set(obj{"name": data.ref.Name}, "spec", "template", "spec", "dataTemplate")
	}
}

// class sets a ClusterClass for the Cluster, which others may share.
func (w *randomCluster) class(c *randomObject, p realProvider) {
	namespace := rapid.SampledFrom([]string{c.ref.Namespace, "classes"}).Draw(w.t, "class's namespace")
	class := w.add("ClusterClass", namespace, "base-"+p.prefix, c)
	c.set(obj{"name": class.ref.Name, "namespace": namespace}, "spec", "topology", "classRef")
	c.set("v1.36.0", "spec", "topology", "version")
	infra := w.add(p.prefix+"ClusterTemplate", namespace, "base", c, class)
	machine := w.add(p.prefix+"MachineTemplate", namespace, "base", c, class)
	plane := w.add("KubeadmControlPlaneTemplate", namespace, "base", c, class)
	of := func(o *randomObject) obj {
		return obj{"apiVersion": o.content["apiVersion"], "kind": o.ref.Kind, "name": o.ref.Name}
	}
	class.set(obj{"templateRef": of(infra)}, "spec", "infrastructure")
	class.set(obj{"templateRef": of(plane), "machineInfrastructure": obj{"templateRef": of(machine)}}, "spec", "controlPlane")
	for _, o := range w.objects { // objects that the class creates are labeled
		if o.users[c.ref.Namespace+"/"+c.ref.Name] && o.has("cluster.x-k8s.io/cluster-name") && o.ref.Namespace == c.ref.Namespace {
			o.label("topology.cluster.x-k8s.io/owned", "")
		}
	}
}

// credentials adds the credentials of the provider: in a Secret or an identity, of this Cluster alone or shared.
func (w *randomCluster) credentials(p realProvider, c, infra *randomObject) {
	name := rapid.SampledFrom([]string{"cloud", "cloud", "cloud-" + c.ref.Name}).Draw(w.t, "credentials")
	own := func() *randomObject {
		secret := w.add("Secret", c.ref.Namespace, name, c)
		switch rapid.IntRange(0, 5).Draw(w.t, "who owns the credentials") {
		case 0:
			secret.label(object.MoveLabel, "")
		case 1: // the first Cluster that references them
			if len(secret.owners) == 0 {
				secret.owners = append(secret.owners, infra)
			}
		case 2:
			if !secret.has("cluster.x-k8s.io/cluster-name") {
				secret.label("cluster.x-k8s.io/cluster-name", c.ref.Name)
			}
		}
		return secret
	}
	owned := func(secret, identity *randomObject) *randomObject {
		if !w.chance("nobody owns the identity's Secret", 4) {
			secret.owners = append(secret.owners[:0], identity)
		}
		return secret
	}
	switch p.prefix {
	case "AWS":
		if w.chance("no identity", 2) {
			return
		}
		identity := w.add("AWSClusterStaticIdentity", "", name, c)
		infra.set(obj{"kind": identity.ref.Kind, "name": name}, "spec", "identityRef")
		identity.set(owned(w.add("Secret", p.namespace, name, c), identity).ref.Name, "spec", "secretRef")
	case "VSphere":
		if w.chance("a Secret as identity", 2) {
			infra.set(obj{"kind": "Secret", "name": own().ref.Name}, "spec", "identityRef")
			return
		}
		identity := w.add("VSphereClusterIdentity", "", name, c)
		infra.set(obj{"kind": identity.ref.Kind, "name": name}, "spec", "identityRef")
		identity.set(owned(w.add("Secret", p.namespace, name, c), identity).ref.Name, "spec", "secretName")
	case "Azure":
		identity := w.add("AzureClusterIdentity", c.ref.Namespace, name, c)
		infra.set(obj{"apiVersion": infraGroup + "/v1beta2", "kind": identity.ref.Kind, "name": name, "namespace": c.ref.Namespace}, "spec", "identityRef")
		secret := owned(w.add("Secret", c.ref.Namespace, name+"-azure", c), identity)
		identity.set(obj{"name": secret.ref.Name, "namespace": c.ref.Namespace}, "spec", "clientSecret")
	case "GCP":
		infra.set(obj{"name": own().ref.Name, "namespace": c.ref.Namespace}, "spec", "credentialsRef")
	case "OpenStack":
		infra.set(obj{"name": own().ref.Name, "cloudName": "one"}, "spec", "identityRef")
	case "Remote":
		for _, o := range w.objects {
			if o.ref.Kind == "RemoteMachine" && o.ref.Namespace == c.ref.Namespace && o.users[c.ref.Namespace+"/"+c.ref.Name] {
				o.set(obj{"name": own().ref.Name}, "spec", "sshKeyRef")
			}
		}
	}
}

// resourceSet may add a ClusterResourceSet that is applied to some Clusters of fleet.
func (w *randomCluster) resourceSet() {
	if !w.chance("resource set", 4) {
		return
	}
	set := w.add("ClusterResourceSet", "fleet", "addons", nil)
	resource := w.add(rapid.SampledFrom([]string{"Secret", "ConfigMap"}).Draw(w.t, "resource"), "fleet", "addon", nil, set)
	set.set([]any{obj{"kind": resource.ref.Kind, "name": resource.ref.Name}}, "spec", "resources")
	for _, c := range w.clusters {
		if c.ref.Namespace != "fleet" || w.chance("not applied", 3) {
			continue
		}
		set.users[c.ref.Namespace+"/"+c.ref.Name] = true // its resources are applied
		binding := w.part("ClusterResourceSetBinding", c.ref.Name, c, set)
		binding.set(c.ref.Name, "spec", "clusterName")
		binding.set([]any{obj{"clusterResourceSetName": set.ref.Name}}, "spec", "bindings")
	}
}

// noise adds objects that belong to no Cluster.
func (w *randomCluster) noise() {
	if w.chance("noise", 2) {
		w.add("Secret", "fleet", "noise", nil)
		w.add("ConfigMap", "fleet", "noise", nil)
		w.add("Secret", "other", "noise", nil)
	}
	if w.chance("free host", 6) {
		host := w.add("BareMetalHost", "fleet", "free", nil)
		host.set("free-bmc", "spec", "bmc", "credentialsName")
		w.add("Secret", "fleet", "free-bmc", nil, host)
	}
	if w.chance("labelled", 4) {
		o := w.add(rapid.SampledFrom([]string{"Secret", "ConfigMap"}).Draw(w.t, "labelled kind"), "fleet", "labelled", nil)
		o.label(object.MoveLabel, "")
		if w.chance("with its Cluster", 2) {
			c := rapid.SampledFrom(w.clusters).Draw(w.t, "whose")
			o.label("cluster.x-k8s.io/cluster-name", c.ref.Name)
			if c.ref.Namespace == "fleet" {
				o.users["fleet/"+c.ref.Name] = true
			}
		}
	}
}

// oddity changes an object as users and other programs do.
func (w *randomCluster) oddity() {
	o := rapid.SampledFrom(w.objects).Draw(w.t, "odd object")
	if o.ref.Kind == "Cluster" || o.ref.Namespace != "fleet" {
		return
	}
	switch rapid.IntRange(0, 6).Draw(w.t, "oddity") {
	case 0: // a backup tool or a user removed the owners
		o.owners = nil
		for _, user := range o.byOwner { // nothing shows it any more
			delete(o.users, user)
		}
	case 1: // another program creates it
		if o.ref.Group == "" {
			o.owners = []*randomObject{w.add("ExternalSecret", "fleet", o.ref.Name, nil)}
		}
	case 2:
		if o.ref.Group == "" {
			o.owners = append(o.owners, w.add("ExternalSecret", "fleet", o.ref.Name, nil))
		}
	case 3:
		if labels, _ := o.meta()["labels"].(obj); labels != nil {
			delete(labels, "cluster.x-k8s.io/cluster-name")
		}
	case 4:
		o.label(object.MoveLabel, "")
	case 5: // another Cluster is also an owner
		if c := rapid.SampledFrom(w.clusters).Draw(w.t, "second owner"); c.ref.Namespace == o.ref.Namespace && !o.active {
			user := c.ref.Namespace + "/" + c.ref.Name
			if o.owners = append(o.owners, c); !o.users[user] {
				o.users[user], o.byOwner = true, append(o.byOwner, user)
			}
		}
	case 6: // two objects own each other
		if p := rapid.SampledFrom(w.objects).Draw(w.t, "circle"); p != o && p.ref.Namespace == o.ref.Namespace && p.ref.Kind != "Cluster" && w.chance("circle after all", 3) {
			o.owners, p.owners = append(o.owners, p), append(p.owners, o)
		}
	}
}
