// What karpenter's own scheduler makes of pods: its provisioner's Solve, without a cluster, in memory.
//
// On stdin JSON, as benchmarks/mix.py writes it: {"pods": [pod], "types": [type]}; on stdout JSON, see result. Pods and
// types are named by their positions. A NodeClaim counts as an instance of the cheapest type that it allows.
//
// Against a karpenter in a cluster: no limit of the NodePool, no one-minute timeout of a round (it would go on in the
// next one), as many scheduling threads as there are CPUs (it takes one for each CPU that it requests, 1 by default),
// no DaemonSets, no nodes that are there already, and nothing is consolidated afterwards.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/record"
	"k8s.io/utils/clock"
	fakeclient "sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/log"

	v1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	"sigs.k8s.io/karpenter/pkg/cloudprovider"
	"sigs.k8s.io/karpenter/pkg/controllers/provisioning/scheduling"
	"sigs.k8s.io/karpenter/pkg/controllers/state"
	"sigs.k8s.io/karpenter/pkg/events"
	"sigs.k8s.io/karpenter/pkg/operator/logging"
	"sigs.k8s.io/karpenter/pkg/operator/options"
	karpenter "sigs.k8s.io/karpenter/pkg/scheduling"
)

const (
	poolName  = "all"
	zone      = "us-east-1a"
	gpuModel  = "ironburst.dev/gpu-model"
	gpuVendor = corev1.ResourceName("nvidia.com/gpu")
)

type pod struct {
	CPUMilli  int64  `json:"cpu_milli"`
	MemoryMiB int64  `json:"memory_mib"`
	GPUs      int64  `json:"gpus"`
	GPUModel  string `json:"gpu_model"`
}

type instanceType struct {
	Name              string  `json:"name"`
	USDPerHour        float64 `json:"usd_per_hour"`
	CPUMilli          int64   `json:"cpu_milli"`
	MemoryMiB         int64   `json:"memory_mib"`
	GPUs              int64   `json:"gpus"`
	GPUModel          string  `json:"gpu_model"`
	Pods              int64   `json:"pods"`
	ReservedCPUMilli  int64   `json:"reserved_cpu_milli"`
	ReservedMemoryMiB int64   `json:"reserved_memory_mib"`
}

type node struct {
	Type int   `json:"type"`
	Pods []int `json:"pods"`
}

type result struct {
	Seconds    float64 `json:"seconds"`
	CPUSeconds float64 `json:"cpu_seconds"`
	Threads    int     `json:"threads"`
	Nodes      []node  `json:"nodes"`
	Unplaced   []int   `json:"unplaced"`
}

func main() {
	log.SetLogger(logging.NopLogger)
	v1.WellKnownLabels.Insert(gpuModel)
	var input struct {
		Pods  []pod          `json:"pods"`
		Types []instanceType `json:"types"`
	}
	if err := json.NewDecoder(os.Stdin).Decode(&input); err != nil {
		fail("stdin is not the JSON that benchmarks/mix.py writes", err)
	}
	solved, err := solve(input.Pods, input.Types)
	if err != nil {
		fail("karpenter's scheduler failed", err)
	}
	if err := json.NewEncoder(os.Stdout).Encode(solved); err != nil {
		fail("stdout", err)
	}
}

func fail(what string, err error) {
	fmt.Fprintf(os.Stderr, "%s: %v\n", what, err)
	os.Exit(1)
}

func solve(wanted []pod, offered []instanceType) (result, error) {
	ctx := options.ToContext(context.Background(), &options.Options{
		CPURequests:       1000,
		PreferencePolicy:  options.PreferencePolicyRespect,
		MinValuesPolicy:   options.MinValuesPolicyStrict,
		IgnoreDRARequests: true,
	})
	pods, numberOfPod := kubePods(wanted)
	kinds, numberOfType := kubeTypes(offered)
	pool := &v1.NodePool{ObjectMeta: metav1.ObjectMeta{Name: poolName, UID: poolName}}
	pool.Spec.Template.Spec.NodeClassRef = &v1.NodeClassReference{Group: "ironburst.dev", Kind: "NodeClass", Name: "default"}
	pools, ofPools := []*v1.NodePool{pool}, map[string][]*cloudprovider.InstanceType{poolName: kinds}
	threads := runtime.NumCPU()
	settings := []scheduling.Options{scheduling.DisableReservedCapacityFallback, scheduling.NumConcurrentReconciles(threads)}
	client, wall := fakeclient.NewFakeClient(), clock.RealClock{}
	cluster := state.NewCluster(wall, client, nil)

	began, before := time.Now(), cpuSeconds()
	topology, err := scheduling.NewTopology(ctx, client, cluster, nil, pools, ofPools, pods, settings...)
	if err != nil {
		return result{}, err
	}
	recorder := events.NewRecorder(&record.FakeRecorder{})
	scheduler := scheduling.NewScheduler(
		ctx, client, pools, cluster, nil, topology, ofPools, nil, recorder, wall, nil, nil, settings...)
	results, err := scheduler.Solve(ctx, pods)
	if err != nil {
		return result{}, err
	}
	results = results.TruncateInstanceTypes(ctx, scheduling.MaxInstanceTypes)
	said := result{
		Seconds: time.Since(began).Seconds(), CPUSeconds: cpuSeconds() - before, Threads: threads,
		Nodes: []node{}, Unplaced: []int{},
	}

	for _, claim := range results.NewNodeClaims {
		placed := node{Type: numberOfType[cheapest(claim).Name]}
		for _, each := range claim.Pods {
			placed.Pods = append(placed.Pods, numberOfPod[each.UID])
		}
		said.Nodes = append(said.Nodes, placed)
	}
	for each := range results.PodErrors {
		said.Unplaced = append(said.Unplaced, numberOfPod[each.UID])
	}
	return said, nil
}

func kubePods(wanted []pod) ([]*corev1.Pod, map[types.UID]int) {
	pods, numberOf := make([]*corev1.Pod, 0, len(wanted)), map[types.UID]int{}
	for number, each := range wanted {
		name := "pod-" + strconv.Itoa(number)
		requests := resources(each.CPUMilli, each.MemoryMiB, each.GPUs)
		made := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default", UID: types.UID(name)}}
		made.Spec.Containers = []corev1.Container{{
			Name: "main", Resources: corev1.ResourceRequirements{Requests: requests, Limits: requests},
		}}
		made.Status.Phase = corev1.PodPending
		if each.GPUModel != "" {
			made.Spec.NodeSelector = map[string]string{gpuModel: label(each.GPUModel)}
		}
		pods, numberOf[made.UID] = append(pods, made), number
	}
	return pods, numberOf
}

func kubeTypes(offered []instanceType) ([]*cloudprovider.InstanceType, map[string]int) {
	kinds, numberOf := make([]*cloudprovider.InstanceType, 0, len(offered)), map[string]int{}
	for number, each := range offered {
		where := karpenter.NewLabelRequirements(map[string]string{
			v1.CapacityTypeLabelKey: v1.CapacityTypeOnDemand, corev1.LabelTopologyZone: zone,
		})
		has := karpenter.NewRequirements(
			karpenter.NewRequirement(corev1.LabelInstanceTypeStable, corev1.NodeSelectorOpIn, each.Name),
			karpenter.NewRequirement(corev1.LabelArchStable, corev1.NodeSelectorOpIn, v1.ArchitectureAmd64),
			karpenter.NewRequirement(corev1.LabelOSStable, corev1.NodeSelectorOpIn, string(corev1.Linux)),
			karpenter.NewRequirement(corev1.LabelTopologyZone, corev1.NodeSelectorOpIn, zone),
			karpenter.NewRequirement(v1.CapacityTypeLabelKey, corev1.NodeSelectorOpIn, v1.CapacityTypeOnDemand),
		)
		if each.GPUModel == "" {
			has.Add(karpenter.NewRequirement(gpuModel, corev1.NodeSelectorOpDoesNotExist))
		} else {
			has.Add(karpenter.NewRequirement(gpuModel, corev1.NodeSelectorOpIn, label(each.GPUModel)))
		}
		capacity := resources(each.CPUMilli, each.MemoryMiB, each.GPUs)
		capacity[corev1.ResourcePods] = *resource.NewQuantity(each.Pods, resource.DecimalSI)
		kinds = append(kinds, &cloudprovider.InstanceType{
			Name:         each.Name,
			Requirements: has,
			Offerings:    cloudprovider.Offerings{{Requirements: where, Price: each.USDPerHour, Available: true}},
			Capacity:     capacity,
			Overhead: &cloudprovider.InstanceTypeOverhead{
				KubeReserved: resources(each.ReservedCPUMilli, each.ReservedMemoryMiB, 0),
			},
		})
		numberOf[each.Name] = number
	}
	return kinds, numberOf
}

func resources(cpuMilli, memoryMiB, gpus int64) corev1.ResourceList {
	list := corev1.ResourceList{
		corev1.ResourceCPU:    *resource.NewMilliQuantity(cpuMilli, resource.DecimalSI),
		corev1.ResourceMemory: *resource.NewQuantity(memoryMiB<<20, resource.BinarySI),
	}
	if gpus > 0 {
		list[gpuVendor] = *resource.NewQuantity(gpus, resource.DecimalSI)
	}
	return list
}

func cheapest(claim *scheduling.NodeClaim) *cloudprovider.InstanceType {
	price := func(kind *cloudprovider.InstanceType) float64 {
		return kind.Offerings.Available().Compatible(claim.Requirements).Cheapest().Price
	}
	best := claim.InstanceTypeOptions[0]
	for _, kind := range claim.InstanceTypeOptions[1:] {
		if price(kind) < price(best) {
			best = kind
		}
	}
	return best
}

// label makes a name fit for the value of a label: no spaces and no slashes.
func label(name string) string {
	made := []rune(name)
	for at, char := range made {
		if char == ' ' || char == '/' {
			made[at] = '-'
		}
	}
	return string(made)
}

func cpuSeconds() float64 {
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		return 0
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano()).Seconds()
}
