// Pulumi's own kubernetes plugin, from its packages. The two files are made from those of its module (../binary.py), as
// its own generate.go does; the module lacks them, for they are not in its repository.
package main

import (
	_ "embed"

	"github.com/pulumi/pulumi-kubernetes/provider/v4/pkg/provider"
	"github.com/pulumi/pulumi-kubernetes/provider/v4/pkg/version"
)

//go:embed schema-embed.json
var schema []byte

//go:embed terraform-mapping-embed.json
var mapping []byte

func main() { provider.Serve("kubernetes", version.Version, schema, mapping) }
