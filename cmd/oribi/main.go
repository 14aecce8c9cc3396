// Command oribi creates, fills, reads and checks Oribi stores. Run "oribi help" for its commands.
package main

import (
	"os"

	"github.com/oribi-db/oribi/cmd/oribi/internal/cli"
)

func main() {
	os.Exit(cli.Main(os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}
