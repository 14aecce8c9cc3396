// Command oribi makes, fills, reads and checks Oribi stores. "oribi help" lists what it does.
package main

import (
	"os"

	"github.com/oribi-db/oribi/cmd/oribi/internal/cli"
)

func main() {
	os.Exit(cli.Main(os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}
