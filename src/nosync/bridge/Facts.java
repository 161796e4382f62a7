import java.lang.management.ManagementFactory;
import java.lang.management.MemoryPoolMXBean;
import java.lang.management.MemoryType;
import java.lang.management.MemoryUsage;
import java.util.Iterator;

import org.apache.spark.sql.internal.SQLConf;

/** What Python asks of a session and of the JVM with each start of a flow and again and again later, in one call each. */
public class Facts {
  /** Settings that somebody has set and that begin with one of these, then those of these names, as far as this version knows them. */
  public String settings(SQLConf conf, String beginnings, String names) {
    StringBuilder found = new StringBuilder();
    scala.collection.Iterator set = conf.getAllConfs().iterator();
    while (set.hasNext()) {
      scala.Tuple2 one = (scala.Tuple2) set.next();
      if (beginsWithOne((String) one._1(), beginnings.split("\n"))) add(found, (String) one._1(), (String) one._2());
    }
    String[] asked = names.split("\n");
    for (int i = 0; i < asked.length; i++) {
      String value;
      try {
        value = conf.getConfString(asked[i]);
      } catch (java.util.NoSuchElementException unknown) {
        continue;
      }
      add(found, asked[i], value);
    }
    return found.toString();
  }

  private static boolean beginsWithOne(String name, String[] beginnings) {
    for (int i = 0; i < beginnings.length; i++) if (name.startsWith(beginnings[i])) return true;
    return false;
  }

  private static void add(StringBuilder found, String name, String value) {
    found.append(name).append('\0').append(value == null ? "None" : value).append('\0');
  }

  /** Bytes of objects, of those that were left when the collector last looked, and the limit. */
  public String heap() {
    long live = 0;
    Iterator pools = ManagementFactory.getMemoryPoolMXBeans().iterator();
    while (pools.hasNext()) {
      MemoryPoolMXBean pool = (MemoryPoolMXBean) pools.next();
      MemoryUsage left = pool.getType() == MemoryType.HEAP ? pool.getCollectionUsage() : null;
      if (left != null) live += left.getUsed();
    }
    MemoryUsage all = ManagementFactory.getMemoryMXBean().getHeapMemoryUsage();
    return all.getUsed() + " " + live + " " + all.getMax();
  }
}
