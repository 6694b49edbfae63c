// The part of the proposed API `testObserver` that the suite uses.

declare module 'vscode' {
  export enum TestResultState {
    Queued = 1,
    Running = 2,
    Passed = 3,
    Failed = 4,
    Skipped = 5,
    Errored = 6,
  }
  export interface TestResultItem {
    readonly label: string;
    readonly taskStates: readonly { readonly state: TestResultState; readonly messages: readonly TestMessage[] }[];
    readonly children: readonly TestResultItem[];
  }
  export interface TestRunResult {
    readonly completedAt: number;
    readonly results: readonly TestResultItem[];
  }
  export namespace tests {
    export const testResults: readonly TestRunResult[];
  }
}
