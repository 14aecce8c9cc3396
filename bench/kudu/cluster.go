package main

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/bench/inputs"
	"github.com/oribi-db/oribi/bench/process"
	"github.com/oribi-db/oribi/bench/work"
	"github.com/oribi-db/oribi/kudu/client"
	"github.com/oribi-db/oribi/schema"
)

// cluster is the servers, and a client.
type cluster struct {
	*servers
	client *client.Client
	paths  paths
}

// startCluster starts the servers on dir. more are flags of the tablet server.
func startCluster(home, dir string, more ...string) (*cluster, error) {
	p, err := readPaths(home)
	if err != nil {
		return nil, err
	}
	s, err := startServers(p.servers, dir, more...)
	if err != nil {
		return nil, err
	}
	c := &cluster{servers: s, paths: p}
	if err := c.connect(context.Background()); err != nil {
		c.end()
		return nil, err
	}
	return c, nil
}

// connect connects the client, and waits for the tablet server.
func (c *cluster) connect(ctx context.Context) (err error) {
	o := &client.Options{Timeout: 2 * time.Minute, CallTimeout: time.Minute}
	if c.client, err = client.Connect(ctx, []string{c.masterRPC}, o); err != nil {
		return err
	}
	for end := time.Now().Add(startTimeout); ; time.Sleep(lookEvery) {
		list, err := c.client.Servers(ctx)
		if err != nil || len(list) > 0 {
			return err
		}
		if time.Now().After(end) {
			return fmt.Errorf("%s is not registered after %v", c.tablet.Name, startTimeout)
		}
	}
}

// table opens a table of lineitem, or creates it.
func (c *cluster) table(ctx context.Context, name string, by client.Partitioning) (*client.Table, error) {
	t, err := c.client.OpenTable(ctx, name)
	if !errors.Is(err, client.ErrNoTable) {
		return t, err
	}
	s, err := work.PlainLineitem()
	if err != nil {
		return nil, err
	}
	return c.client.CreateTable(ctx, &client.TableSpec{Name: name, Schema: s, Partitioning: by, Replicas: 1})
}

// end ends all processes.
func (c *cluster) end() {
	if c.client != nil {
		c.client.Close()
	}
	c.stop()
}

// newRows returns a batch with the columns of a table.
func newRows(s *schema.Schema) *batch.RecordBatch {
	return &batch.RecordBatch{Schema: s.Columns, Columns: inputs.NewVectors(s)}
}

// flush waits until all rows of a session are written.
func flush(s *client.Session) error {
	done, err := s.Flush(context.Background())
	if err == nil && len(done.RowErrors) > 0 {
		err = done.RowErrors[0]
	}
	return err
}

// clientMemory bounds the heap of the Java client.
const clientMemory = "-Xmx512m"

// java starts the program with Kudu's own client, and connects it.
func (c *cluster) java() (*process.Program, error) {
	p, err := process.StartProgram("the client", filepath.Join(c.dir, "client.log"),
		exec.Command("java", clientMemory, "-cp", c.paths.classpath, "Client"))
	if err != nil {
		return nil, err
	}
	if _, err := p.Ask(nil, "open", c.masterRPC); err != nil {
		p.End()
		return nil, err
	}
	return p, nil
}
