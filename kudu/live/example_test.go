package live_test

import (
	"context"
	"fmt"
	"log"
	"time"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/kudu/client"
	"github.com/oribi-db/oribi/kudu/live"
)

// A program that writes a store keeps a copy of a table in a cluster in step.
func ExampleSync() {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel() // ends the copy; what was sent has arrived when Sync returns
	store, err := oribi.Open("store", nil)
	if err != nil {
		log.Fatal(err)
	}
	defer store.Close()
	table, err := store.Table("metrics")
	if err != nil {
		log.Fatal(err)
	}
	cluster, err := client.Connect(ctx, []string{"master-1:7051", "master-2:7051", "master-3:7051"}, nil)
	if err != nil {
		log.Fatal(err)
	}
	defer cluster.Close()
	err = live.Sync(ctx, store, table, live.Target{Cluster: cluster}, &live.Options{
		Progress: func(s live.Status) {
			if s.Lag > time.Minute {
				log.Printf("the copy is %v behind, %d changes", s.Lag, s.Behind)
			}
		},
	})
	if err != nil {
		log.Fatal(err)
	}
}

// Rows that differ are listed, here for a copy that others may have changed.
func ExampleCompare() {
	var table *oribi.Table
	var copied *client.Table // opened
	for d, err := range live.Compare(context.Background(), table, copied, live.CompareOptions{}) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Printf("%q is %q here and %q there\n", d.Key, d.Here, d.There)
	}
}
