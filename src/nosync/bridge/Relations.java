import java.util.ArrayList;
import java.util.IdentityHashMap;

import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;

import scala.Function1;
import scala.runtime.AbstractPartialFunction;

/**
 * Leaves of one kind in a plan, those inside of subqueries too: first looked for, then replaced. Compiled at run time, as Trees is.
 */
public class Relations extends AbstractPartialFunction {
  private String kind;
  private ArrayList met = new ArrayList();
  private IdentityHashMap instead = new IdentityHashMap();

  public Relations of(String kind) {
    Relations made = new Relations();
    made.kind = kind;
    return made;
  }

  /** How many there are; each is had by its number. */
  public int search(LogicalPlan plan) {
    plan.transformWithSubqueries(this);
    return met.size();
  }

  public Object found(int number) {
    return met.get(number);
  }

  public void put(Object before, Object after) {
    instead.put(before, after);
  }

  public LogicalPlan replaced(LogicalPlan plan) {
    return (LogicalPlan) plan.transformWithSubqueries(this);
  }

  public boolean isDefinedAt(Object node) {
    return node.getClass().getSimpleName().equals(kind);
  }

  public Object applyOrElse(Object node, Function1 otherwise) {
    if (!isDefinedAt(node)) return otherwise.apply(node);
    if (instead.containsKey(node)) return instead.get(node);
    met.add(node);
    return node;
  }
}
