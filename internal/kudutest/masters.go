package kudutest

import (
	"fmt"
	"path/filepath"
	"strings"
)

// AddMaster gives the cluster one more master, before it starts.
func (c *Cluster) AddMaster() {
	c.t.Helper()
	name := "master"
	if n := len(c.Masters); n > 0 {
		name = fmt.Sprint(name, n)
	}
	c.Masters = append(c.Masters, &Server{Dir: filepath.Join(c.dir, name), Address: freeAddress(c.t)})
	var addresses []string
	for _, m := range c.Masters {
		addresses = append(addresses, m.Address)
	}
	c.Master = strings.Join(addresses, ",")
}

// StartMaster starts the masters and the client.
func (c *Cluster) StartMaster() {
	c.t.Helper()
	c.StartMasters()
	c.connect()
}

// StartMasters starts the masters that do not run.
func (c *Cluster) StartMasters() {
	c.t.Helper()
	var several []string
	if len(c.Masters) > 1 {
		several = []string{"--master_addresses=" + c.Master}
	}
	for _, m := range c.Masters {
		if m.running == nil {
			m.running = c.spawn(filepath.Base(m.Dir), append(several, m.Flags...), "master", "run", "--fs_wal_dir="+m.Dir,
				"--rpc_bind_addresses="+m.Address, "--default_num_replicas=1", "--catalog_manager_bg_task_wait_ms=50")
		}
	}
}

// MasterDir returns the only root of the first master.
func (c *Cluster) MasterDir() string { return c.Masters[0].Dir }
